# make_geo_db.pl TYPE FILE NETWORK=VALUE...: a small database of MaxMind's format. TYPE is ASN or
# Country; a value is a number or a country's two letters.
use strict;
use warnings;
use MaxMind::DB::Writer::Tree;

my ($type, $file, @networks) = @ARGV;
my %types = (
    autonomous_system_number => 'uint32',
    country                  => 'map',
    iso_code                 => 'utf8_string',
);
my $tree = MaxMind::DB::Writer::Tree->new(
    ip_version               => 6,
    record_size              => 24,
    database_type            => "Test-$type",
    languages                => ['en'],
    description              => { en => 'made by a test' },
    map_key_type_callback    => sub { $types{ $_[0] } },
    remove_reserved_networks => 0,
);
for my $pair (@networks) {
    my ($network, $value) = split /=/, $pair;
    $tree->insert_network($network,
        $type eq 'ASN' ? { autonomous_system_number => $value + 0 }
                       : { country => { iso_code => $value } });
}
open my $out, '>:raw', $file or die "$file: $!";
$tree->write_tree($out);
close $out or die "$file: $!";
